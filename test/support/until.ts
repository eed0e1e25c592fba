/** Polls, as everything that waits for k0s or for a machine must; `what` is named when it never comes. */
export async function until<T>(
  what: string,
  look: () => Promise<T | undefined | false>,
  { limitMs = 60_000, everyMs = 100 }: { readonly limitMs?: number; readonly everyMs?: number } = {},
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`not within ${limitMs / 1000} s: ${what}`);
    await Bun.sleep(everyMs);
  }
}

/** What a watcher said in this boot, so that a restarted daemon does not say it again. */
import type { Host } from "../kit/ports.ts";

/** `otherwise` where nothing is kept, or half of it: then it is said once more. */
export async function readRemembered<T extends object>(host: Host, path: string, otherwise: T): Promise<T> {
  const text = await host.files.readText(path);
  if (!text.ok) return otherwise;
  try {
    const value: unknown = JSON.parse(text.value);
    const isSuch = typeof value === "object" && value !== null && Array.isArray(value) === Array.isArray(otherwise);
    return isSuch ? (value as T) : otherwise;
  } catch {
    return otherwise;
  }
}

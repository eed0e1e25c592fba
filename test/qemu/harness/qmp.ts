/** QEMU's control socket: block counters, pulling disks and links, power. */
import type { Socket } from "node:net";

export interface QmpEvent {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Qmp {
  execute(command: string, args?: Readonly<Record<string, unknown>>, timeoutMs?: number): Promise<unknown>;
  /** The monitor for people, for what QMP has not: `savevm`, `loadvm`. Throws when it answers with an error. */
  monitor(line: string, timeoutMs?: number): Promise<string>;
  waitEvent(matches: (event: QmpEvent) => boolean, timeoutMs: number): Promise<QmpEvent>;
  events(): readonly QmpEvent[];
  close(): void;
}

interface Answer {
  readonly id?: number;
  readonly return?: unknown;
  readonly error?: { readonly class: string; readonly desc: string };
  readonly event?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export async function openQmp(socket: Socket): Promise<Qmp> {
  const pending = new Map<
    number,
    { readonly resolve: (value: unknown) => void; readonly reject: (e: Error) => void }
  >();
  const watchers = new Set<(event: QmpEvent) => void>();
  const seen: QmpEvent[] = [];
  let buffered = "";
  let lastId = 0;
  let isClosed = false;

  socket.setEncoding("utf8");
  socket.on("data", (chunk: string) => {
    buffered += chunk;
    for (let at = buffered.indexOf("\n"); at >= 0; at = buffered.indexOf("\n")) {
      const line = buffered.slice(0, at).trim();
      buffered = buffered.slice(at + 1);
      if (line !== "") receive(JSON.parse(line) as Answer);
    }
  });
  const end = (): void => {
    isClosed = true;
    for (const { reject } of pending.values()) reject(new Error("qemu closed its control socket"));
    pending.clear();
  };
  socket.on("close", end);
  socket.on("error", end);

  function receive(answer: Answer): void {
    if (answer.event !== undefined) {
      const event = { event: answer.event, data: answer.data ?? {} };
      seen.push(event);
      for (const watcher of watchers) watcher(event);
      return;
    }
    const waiting = answer.id === undefined ? undefined : pending.get(answer.id);
    if (waiting === undefined || answer.id === undefined) return;
    pending.delete(answer.id);
    if (answer.error === undefined) waiting.resolve(answer.return);
    else waiting.reject(new Error(`qemu: ${answer.error.class}: ${answer.error.desc}`));
  }

  const execute: Qmp["execute"] = (command, args, timeoutMs = 30_000) => {
    if (isClosed) return Promise.reject(new Error(`qemu is gone, ${command} can't be sent`));
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = ++lastId;
    const timer = setTimeout(() => {
      pending.delete(id);
      reject(new Error(`qemu did not answer ${command} within ${timeoutMs / 1000} s`));
    }, timeoutMs);
    pending.set(id, {
      resolve: (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      reject: (error) => {
        clearTimeout(timer);
        reject(error);
      },
    });
    socket.write(`${JSON.stringify({ execute: command, ...(args === undefined ? {} : { arguments: args }), id })}\n`);
    return promise;
  };

  await execute("qmp_capabilities");
  return {
    execute,
    events: () => seen,
    monitor: async (line, timeoutMs = 120_000) => {
      const text = String(await execute("human-monitor-command", { "command-line": line }, timeoutMs)).trim();
      if (/^error/i.test(text)) throw new Error(`qemu monitor: ${line}: ${text}`);
      return text;
    },
    waitEvent: (matches, timeoutMs) => {
      const { promise, resolve, reject } = Promise.withResolvers<QmpEvent>();
      const watcher = (event: QmpEvent): void => {
        if (!matches(event)) return;
        watchers.delete(watcher);
        clearTimeout(timer);
        resolve(event);
      };
      const timer = setTimeout(() => {
        watchers.delete(watcher);
        reject(new Error(`qemu did not report the event within ${timeoutMs / 1000} s`));
      }, timeoutMs);
      watchers.add(watcher);
      return promise;
    },
    close: () => {
      socket.destroy();
    },
  };
}

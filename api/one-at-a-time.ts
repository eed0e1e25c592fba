import type { ApiServices } from "./services.ts";

const queues = new WeakMap<ApiServices, Promise<unknown>>();

/**
 * Changes of what the node is to become: a claim, and a document before bootstrap. Each is a file and a record that
 * must not be mixed with another's; what a change relies on, it looks at inside.
 */
export function oneAtATime<T>(services: ApiServices, change: () => Promise<T>): Promise<T> {
  const turn = (queues.get(services) ?? Promise.resolve()).then(change);
  queues.set(
    services,
    turn.catch(() => undefined),
  );
  return turn;
}

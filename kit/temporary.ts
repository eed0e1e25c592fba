/** Names of half-written files. They carry their writer's process number, so that what a dead one left can be told. */
const SUFFIX = ".corium-tmp";

export const temporaryName = (name: string, pid: number, count: number): string => `.${name}.${pid}-${count}${SUFFIX}`;

export const isTemporaryName = (name: string): boolean => name.endsWith(SUFFIX);

/** The process number; `undefined` for any other name. */
export function temporaryWriter(name: string): number | undefined {
  const pid = /^\..+\.(\d+)-\d+\.corium-tmp$/s.exec(name)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

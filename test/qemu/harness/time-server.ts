/**
 * A time server (SNTP, RFC 5905 section 14) on this host, which a guest reaches at 10.0.2.2. Without one a machine that
 * has no network but this host waits for its two minutes of grace before it believes its clock.
 */
const PORT = 123;
const PACKET_BYTES = 48;
/** Seconds from 1900, where NTP begins, to 1970. */
const NTP_EPOCH_SECONDS = 2_208_988_800;

/** What the kernel of a guest must be told: `corium.ntp=`. */
export const TIME_SERVER_ARGUMENT = "corium.ntp=10.0.2.2";

export interface TimeServer {
  close(): void;
}

/** The answer to a request; undefined when it is none. */
export function answerTime(request: Uint8Array, nowMs: number): Uint8Array | undefined {
  const [first = 0] = request;
  const version = (first >> 3) & 7;
  if (request.length < PACKET_BYTES || (first & 7) !== 3 || version < 3 || version > 4) return undefined;
  const answer = new Uint8Array(PACKET_BYTES);
  const view = new DataView(answer.buffer);
  // No leap second, the client's version, mode 4 (server); stratum 2, its poll interval, a precision of 2^-10 s.
  view.setUint8(0, (version << 3) | 4);
  view.setUint8(1, 2);
  view.setUint8(2, request[2] ?? 6);
  view.setInt8(3, -10);
  // Root dispersion 1/64 s; the reference is whatever set this host's clock.
  view.setUint32(8, 1 << 10);
  answer.set([127, 0, 0, 1], 12);
  answer.set(request.subarray(40, 48), 24);
  for (const offset of [16, 32, 40]) {
    view.setUint32(offset, (Math.floor(nowMs / 1000) + NTP_EPOCH_SECONDS) >>> 0);
    view.setUint32(offset + 4, Math.floor(((nowMs % 1000) / 1000) * 2 ** 32));
  }
  return answer;
}

/** Undefined where the port can't be had: it takes root, and a host may have a time server of its own, which then serves. */
export async function serveTime(): Promise<TimeServer | undefined> {
  try {
    const socket = await Bun.udpSocket({
      hostname: "127.0.0.1",
      port: PORT,
      socket: {
        data: (own, data, port, address) => {
          const answer = answerTime(data, Date.now());
          if (answer !== undefined) own.send(answer, port, address);
        },
      },
    });
    return { close: () => socket.close() };
  } catch {
    return undefined;
  }
}

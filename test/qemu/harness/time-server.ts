/**
 * A time server for guests, as a site has one: without it every first boot waits its two minutes for
 * synchronisation (spec of the clock: a plausible time that nobody confirms is taken with a warning).
 * 10.0.2.2 is this host's 127.0.0.1 for a guest on QEMU's user network.
 */
const NTP_PORT = 123;
/** Seconds from 1900 to 1970. */
const ERA = 2_208_988_800;

export interface TimeServer {
  readonly close: () => void;
}

/** RFC 4330 section 5; `undefined` for what is no question of a client. */
export function answerTo(question: Uint8Array, nowMs: number): Uint8Array | undefined {
  if (question.length < 48 || ((question[0] ?? 0) & 7) !== 3) return undefined;
  const answer = new Uint8Array(48);
  const view = new DataView(answer.buffer);
  const version = (question[0] ?? 0) & 0x38;
  // No leap second, server; stratum 1, a precision of a millisecond, and a reference that says what it is.
  answer.set([version | 4, 1, question[2] ?? 6, 0xf6]);
  answer.set(new TextEncoder().encode("LOCL"), 12);
  answer.set(question.subarray(40, 48), 24);
  for (const offset of [16, 32, 40]) {
    view.setUint32(offset, Math.floor(nowMs / 1000) + ERA);
    view.setUint32(offset + 4, Math.floor(((nowMs % 1000) / 1000) * 2 ** 32));
  }
  return answer;
}

/** Without root, or where the port is taken: undefined, and guests wait as they would without one. */
export async function startTimeServer(): Promise<TimeServer | undefined> {
  try {
    const socket = await Bun.udpSocket({
      hostname: "127.0.0.1",
      port: NTP_PORT,
      socket: {
        data(server, question, port, address) {
          const answer = answerTo(question, Date.now());
          if (answer !== undefined) server.send(answer, port, address);
        },
      },
    });
    return { close: () => socket.close() };
  } catch {
    return undefined;
  }
}

const DROP_IN = `[Service]
ExecStartPre=+/bin/sh -c 'mkdir -p /run/systemd/timesyncd.conf.d && printf "[Time]\\nNTP=10.0.2.2\\n" >/run/systemd/timesyncd.conf.d/10-host.conf'
`;

/** SMBIOS string that names this host to the guest's timesyncd (man systemd.system-credentials). */
export function timeServerOemString(): string {
  const name = "systemd.unit-dropin.systemd-timesyncd.service~host";
  return `io.systemd.credential.binary:${name}=${Buffer.from(DROP_IN).toString("base64")}`;
}

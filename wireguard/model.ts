import type { RenderedFile } from "../kit/rendered.ts";
import type { StepBase } from "../kit/step.ts";

/** A file that holds a key and nothing else. */
export interface KeyFile {
  readonly path: string;
  /** Where the key comes from: a secret's field. Absent: made on this node, and never leaving it. */
  readonly field?: string;
  /** Of the private key: the file that says that this node made it. */
  readonly madeMark?: string;
}

export interface WireguardKeyStep extends StepBase {
  readonly kind: "wireguard:key";
  /** The private key first, then those shared with single peers. */
  readonly keys: readonly KeyFile[];
}

export interface WireguardInterfaceStep extends StepBase {
  readonly kind: "wireguard:interface";
  readonly name: string;
  /** CIDRs that must be on it when it is up. */
  readonly addresses: readonly string[];
  readonly mtu?: number;
  readonly netdevPath: string;
  /** Where the keys are that it shares with single peers, by their public keys. */
  readonly sharedKeyPaths: ReadonlyMap<string, string>;
  readonly files: readonly RenderedFile[];
}

export type WireguardStep = WireguardKeyStep | WireguardInterfaceStep;

/** One peer of `wg show all dump`, without the key that it shares with us. */
export interface PeerStatus {
  readonly publicKey: string;
  readonly endpoint?: string;
  readonly allowedIPs: readonly string[];
  /** Seconds since 1970; absent: never. */
  readonly latestHandshake?: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

/** One interface of `wg show all dump`, without its private key. */
export interface InterfaceStatus {
  readonly name: string;
  readonly publicKey?: string;
  readonly listenPort?: number;
  readonly peers: readonly PeerStatus[];
}

/** `networkctl status --json`, as far as it says whether the interface is up. */
export interface LinkStatus {
  readonly isUp: boolean;
  readonly isConfigured: boolean;
  readonly mtu: number;
  /** With prefix length. */
  readonly addresses: readonly string[];
}

/** What the console asks the node's own API for, through the socket. */
export interface ApiRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: unknown;
  readonly ifMatch?: string;
  /** Not waited for to its end: its steps are on the screen. */
  readonly isLong?: true;
}

/** Servers of a test that the guest reaches at 10.0.2.2, and a certificate authority for them. */
import { createAuthority, issue, type Pair } from "../k0s-sim/certificates.ts";

/** This host, as a guest on the user network sees it. */
export const HOST_ADDRESS = "10.0.2.2";

export interface TestServer {
  readonly port: number;
  /** As the guest reaches it, without a slash at the end. */
  readonly url: string;
  /** Method and path of every request, in order. */
  readonly requests: readonly string[];
  stop(): void;
}

export interface TestServerOptions {
  /** Files below it are served. */
  readonly directory?: string;
  /** Comes first; undefined goes on to the folder. */
  readonly respond?: (request: Request) => Response | Promise<Response> | undefined;
  readonly tls?: Pair;
  readonly port?: number;
}

export function startServer(options: TestServerOptions): TestServer {
  const requests: string[] = [];
  const server = Bun.serve({
    port: options.port ?? 0,
    hostname: "0.0.0.0",
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    fetch: async (request) => {
      const path = decodeURIComponent(new URL(request.url).pathname);
      requests.push(`${request.method} ${path}`);
      const own = await options.respond?.(request);
      if (own !== undefined) return own;
      if (options.directory === undefined || path.includes("..")) return new Response("not found\n", { status: 404 });
      const file = Bun.file(`${options.directory}${path}`);
      return (await file.exists()) ? new Response(file) : new Response("not found\n", { status: 404 });
    },
  });
  const port = server.port ?? 0;
  return {
    port,
    url: `${options.tls === undefined ? "http" : "https"}://${HOST_ADDRESS}:${port}`,
    requests,
    stop: () => {
      void server.stop(true);
    },
  };
}

export interface TestCa {
  readonly cert: string;
  readonly pair: Pair;
  server(names?: readonly string[], days?: number): Promise<Pair>;
}

export async function createTestCa(name = "corium test CA"): Promise<TestCa> {
  const pair = await createAuthority(name);
  return {
    cert: pair.cert,
    pair,
    server: (names = [HOST_ADDRESS, "127.0.0.1", "localhost"], days = 30) =>
      issue(pair, { commonName: names[0] ?? HOST_ADDRESS, sans: names }, days),
  };
}

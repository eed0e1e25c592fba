/** What a verb of kubectl prints, and how it exits. */
export interface KubectlResult {
  readonly out: string;
  readonly err: string;
  readonly exitCode: number;
}

export interface Migration {
  /** Counts up by one. */
  readonly number: number;
  readonly sql: string;
}

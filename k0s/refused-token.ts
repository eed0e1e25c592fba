/** What k0s's journal says of a join token that the cluster does not take. Pure. */

/**
 * Of the join API (`unexpected response status: 401 Unauthorized`) and of the API server that a kubelet asks for its
 * certificate (`cannot create certificate signing request: Unauthorized`).
 */
const REFUSED = /\b401 Unauthorized\b|\bstatus:? 401\b|: Unauthorized\b/;

/** `before`: what stood there when the wait began, which may be of an earlier token. */
export function isTokenRefused(journal: readonly string[], before: readonly string[] = []): boolean {
  return journal.some((line) => REFUSED.test(line) && !before.includes(line));
}

export const TOKEN_REFUSED = "the cluster refuses the join token (401): it has expired, or was revoked";
export const TOKEN_REFUSED_HINT =
  "make a new one on a controller (`cctl join-token`), give it to this node in its document, and `cctl retry`; check its clock too";

/** What an operator may do; each includes the ones before it. Subject O of a client certificate: `corium:ROLE`. */
export type OperatorRole = "readonly" | "operator" | "admin";

export const OPERATOR_ROLES: readonly OperatorRole[] = ["readonly", "operator", "admin"];

export const ROLE_PREFIX = "corium:";

/** Whether one who holds `held` may do what asks for `wanted`. */
export const includesRole = (held: OperatorRole, wanted: OperatorRole): boolean =>
  OPERATOR_ROLES.indexOf(held) >= OPERATOR_ROLES.indexOf(wanted);

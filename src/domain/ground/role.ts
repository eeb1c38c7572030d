/** Each may do what the roles before it may. */
export const roles = ['viewer', 'operator', 'owner'] as const

/** A viewer reads. An operator also changes everything except accounts, which only owners change. */
export type Role = (typeof roles)[number]

export function hasRole(role: Role, required: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(required)
}

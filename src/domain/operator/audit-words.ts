import { capitalized } from '../ground/format.ts'
import { actions } from './actions.ts'

/** The words of each action of the audit log: those that actions declare, and those that code writes. */
export const auditWords: Readonly<Record<string, string>> = {
  'message.tested': 'Test message sent',
  'review-number.used': 'Review number used',
  'console.link': 'Sign-in link created',
  'console.login': 'Signed in',
  'console.logout': 'Signed out',
  'console.session-revoked': 'Session ended',
  'operator.password-set': 'Password changed',
  'operator.app-set': 'Authenticator app set',
  'operator.recovery-codes-renewed': 'Recovery codes created',
  'operator.passkey-added': 'Passkey added',
  'operator.passkey-removed': 'Passkey removed',
  'data.backed-up': 'Backup written',
  'data.forgotten': 'Personal data deleted',
  'data.restored': 'Database restored',
  ...Object.assign({}, ...actions.map(({ audit }) => audit)),
}

/** A detail of an entry, as the form of the change labels it, and its value in words. */
export function detailWords(
  action: string,
  name: string,
  value: string,
): readonly [label: string, value: string] {
  const declared = actions.find(({ audit }) => action in audit)?.fields[name]?.label
  const spaced = name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return [capitalized(declared ?? spaced), value.split(' → ').map(valueWords).join(' → ')]
}

function valueWords(value: string): string {
  if (value === '-' || value === '[]' || value === '') return 'none'
  if (value === 'true' || value === 'false') return value === 'true' ? 'yes' : 'no'
  return /^\["[^\\]*"\]$/.test(value) ? (JSON.parse(value) as string[]).join(', ') : value
}

/** What audit entries are about. By group: their action before the dot. */
export const auditGroups: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    actions.flatMap(({ audit, group }) =>
      Object.keys(audit).map((action) => [action.split('.')[0], group.entries]),
    ),
  ),
  message: 'test messages',
  console: 'sign-ins and sessions',
  data: 'data',
}

import {
  type AccountPorts,
  invitationMs,
  inviteOperator,
  removeOperator,
  resetOperator,
  setRole,
} from '../accounts/account-changes.ts'
import type { Contacts } from '../ground/contact.ts'
import { roles } from '../ground/role.ts'
import { hourMs } from '../ground/time.ts'
import { action, type Group } from './action.ts'
import { field, oneOf, text } from './fields.ts'

export interface AccountActionPorts extends AccountPorts {
  readonly contacts: Pick<Contacts, 'email'>
  readonly ownUrl: () => string | Promise<string>
}

export const operatorGroup: Group = {
  name: 'admin operator',
  does: 'manage the accounts of operators',
  entries: 'accounts',
  target: 'e-mail address',
}

const emailField = field(text, {
  label: 'E-mail address',
  help: 'the e-mail address of the person',
  max: 254,
  inputType: 'email',
})

const roleWords = 'the role'

async function linkOf({ ownUrl }: AccountActionPorts, token: string): Promise<string> {
  return `${await ownUrl()}/admin/link#${token}`
}

/** As accounts have it. */
function emailOf({ contacts }: AccountActionPorts, asGiven: string): string {
  return contacts.email(asGiven)?.to ?? asGiven
}

export const operatorInvite = action(operatorGroup, 'invite', {
  role: 'owner',
  isSensitive: true,
  does: `create an account, and print the link that sets it up within ${invitationMs / hourMs} hours`,
  fields: {
    email: emailField,
    role: field(oneOf('role', roles), { label: 'Role', as: '--role <role>', help: roleWords, hint: '' }),
  },
  audit: { 'operator.invited': 'Operator invited' },
  form: { path: 'operators' },
  run: async (ports: AccountActionPorts, { email: asGiven, role }) => {
    const { email, token } = await inviteOperator(ports, asGiven, role)
    return { email, link: await linkOf(ports, token) }
  },
  said: ({ email, link }) => ({ text: email, secret: link }),
})

const operatorRole = action(operatorGroup, 'role', {
  role: 'owner',
  isSensitive: true,
  does: 'change the role of an account',
  fields: { email: emailField, role: field(oneOf('role', roles), { label: 'Role', help: roleWords }) },
  audit: { 'operator.role': 'Role changed' },
  form: { path: 'operators/role' },
  run: async (ports: AccountActionPorts, { email: asGiven, role }) => {
    const email = emailOf(ports, asGiven)
    await setRole(ports, email, role)
    return { email, role }
  },
  said: ({ email, role }) => `${email} has the role ${role}.`,
})

export const operatorReset = action(operatorGroup, 'reset', {
  role: 'owner',
  isSensitive: true,
  does: 'remove the password and second factors, and print a link that sets them up again',
  fields: { email: emailField },
  audit: { 'operator.reset': 'Sign-in reset' },
  form: { path: 'operators/reset' },
  run: async (ports: AccountActionPorts, { email: asGiven }) => {
    const email = emailOf(ports, asGiven)
    return { email, link: await linkOf(ports, await resetOperator(ports, email)) }
  },
  said: ({ email, link }) => ({ text: email, secret: link }),
})

export const operatorRemove = action(operatorGroup, 'remove', {
  role: 'owner',
  isSensitive: true,
  does: 'remove an account and end its sessions',
  fields: { email: emailField },
  audit: { 'operator.removed': 'Operator removed' },
  form: { path: 'operators/remove' },
  run: async (ports: AccountActionPorts, { email: asGiven }) => {
    const email = emailOf(ports, asGiven)
    await removeOperator(ports, email)
    return email
  },
  said: (email) => `Removed ${email}.`,
})

export const accountActions = [operatorInvite, operatorRole, operatorReset, operatorRemove]

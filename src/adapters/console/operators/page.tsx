/** @jsxImportSource preact */

import { type Account, accountListing, isSetUp } from '../../../domain/accounts/accounts.ts'
import { counted } from '../../../domain/ground/format.ts'
import { roles } from '../../../domain/ground/role.ts'
import { operatorInvite, operatorRemove, operatorReset } from '../../../domain/operator/accounts.ts'
import { tokenCreate, tokenRevoke } from '../../../domain/operator/manage-tokens.ts'
import { type ManageToken, manageTokenListing } from '../../../domain/policy/policy-store.ts'
import { Badge, Button, Empty, Time } from '../../pages/components.tsx'
import { ActionButton, ActionForm } from '../action-form.tsx'
import { actions, Card, columnsOf, consolePage, Form, ShownOnce, Table } from '../components.tsx'
import type { PageContext } from '../page-context.ts'

export interface OperatorsModel {
  readonly accounts: readonly Account[]
  readonly tokens: readonly ManageToken[]
  /** Of the management API; shown once. */
  readonly created?: { readonly title: string; readonly token: string }
}

export function operatorsPage(
  pageContext: PageContext,
  { accounts, tokens, created }: OperatorsModel,
): string {
  return consolePage(
    pageContext,
    { title: 'Operators', section: 'operators' },
    <>
      {created && (
        <ShownOnce title={created.title} thing="token" text={created.token}>
          otpost stores only its hash. If you lose it, revoke the token and create another one.
        </ShownOnce>
      )}
      <Card
        class="accounts"
        title="Accounts"
        hint="A viewer reads. An operator also changes everything except accounts. An owner also changes accounts."
      >
        <Table
          caption="Accounts of operators"
          columns={[
            ...columnsOf(accountListing, 'email', 'role'),
            'Signs in with',
            ...columnsOf(accountListing, 'signedInAt'),
            actions,
          ]}
          rows={accounts.map((account) => accountCells(account, account.email === pageContext.person.email))}
          empty={<Empty title="No accounts yet">Invite yourself as the first owner.</Empty>}
        />
      </Card>
      <Card
        title="Invite an operator"
        hint="The next page shows a link, once. With it the person chooses a passkey, or a password and an authenticator app."
      >
        <ActionForm
          of={operatorInvite}
          start={{ role: accounts.length === 0 ? 'owner' : 'operator' }}
          submit="Invite"
        />
      </Card>
      <Card
        title="Tokens of the management API"
        hint="Programs call /api/manage with them. The audit log names the token."
      >
        <Table
          caption="Tokens of the management API"
          columns={[...columnsOf(manageTokenListing, 'name', 'role', 'createdAt', 'expiresAt'), actions]}
          rows={tokens.map(tokenCells)}
          empty="None."
        />
        <ActionForm of={tokenCreate} id="token" start={{ role: 'operator' }} submit="Create a token" />
      </Card>
    </>,
  )
}

function RoleSelect({ id, role }: { id: string; role: string }) {
  return (
    <select id={id} name="role">
      {roles.map((each) => (
        <option key={each} value={each} selected={each === role}>
          {each}
        </option>
      ))}
    </select>
  )
}

function accountCells(account: Account, isOwn: boolean) {
  const { email, role, passwordHash, totpSecret, passkeys, signedInAt } = account
  const hidden = { email }
  const ways = [
    passwordHash !== null && totpSecret !== null && 'password and app',
    passkeys.length > 0 && counted(passkeys.length, 'passkey'),
  ].filter(Boolean)
  const isActive = isSetUp(account)
  const id = `role-${account.id}`
  return [
    <span class="with-badge">
      <span>{email}</span> {isOwn ? <Badge tone="good">you</Badge> : null}
    </span>,
    <Form action="/admin/operators/role" hidden={hidden} class="inline">
      <label class="sr-only" for={id}>
        Role of {email}
      </label>
      <RoleSelect id={id} role={role} />
      <Button kind="plain" small>
        Save<span class="sr-only"> the role of {email}</span>
      </Button>
    </Form>,
    isActive ? ways.join(', ') : <Badge tone="warn">invited</Badge>,
    isActive && signedInAt !== null ? <Time at={signedInAt} /> : <span class="hint">never</span>,
    <div class="actions">
      <ActionButton
        of={operatorReset}
        with={hidden}
        confirm={`Remove the password, the app and the passkeys of ${email}? You get a link with which the person sets them up again.`}
      >
        {isActive ? 'Reset sign-in' : 'New link'}
        <span class="sr-only"> of {email}</span>
      </ActionButton>
      <ActionButton
        of={operatorRemove}
        with={hidden}
        confirm={`Remove the account of ${email}?`}
        kind="danger"
      >
        Remove<span class="sr-only"> {email}</span>
      </ActionButton>
    </div>,
  ]
}

function tokenCells({ name, role, createdAt, expiresAt }: ManageToken) {
  return [
    <code key="name">{name}</code>,
    role,
    <Time key="created" at={createdAt} />,
    expiresAt === null ? 'never' : <Time key="expires" at={expiresAt} />,
    <ActionButton
      key="revoke"
      of={tokenRevoke}
      with={{ name }}
      confirm={`Revoke the token ${name}? Programs can no longer use it.`}
      kind="danger"
    >
      Revoke<span class="sr-only"> {name}</span>
    </ActionButton>,
  ]
}

/** @param link shown once */
export function invitationPage(
  pageContext: PageContext,
  { email, link }: { readonly email: string; readonly link: string },
): string {
  return consolePage(
    pageContext,
    {
      title: 'Invitation',
      section: 'operators',
      parent: { title: 'Operators', href: '/admin/operators' },
    },
    <ShownOnce
      title={`Link for ${email}`}
      thing="link"
      text={link}
      isLong
      done={{ title: 'Operators', href: '/admin/operators' }}
    >
      It signs the person in once, within 72 hours, to set up the account. Send it over a channel that only
      this person reads.
    </ShownOnce>,
  )
}

import { createSmtpMailer } from '../adapters/email/smtp.ts'
import type { Config } from '../config/config.ts'
import { isLoopback } from '../config/settings.ts'
import { providersOf } from '../config/warnings.ts'
import { type Finding, fail, ok, warn } from '../domain/health/problem.ts'
import { certificateEnd, certificateFinding } from './certificate.ts'
import type { ClockSample } from './clock.ts'
import { type Reach, reach } from './reach.ts'

// Whether providers, the mail server and other hosts of the settings answer.

/** The time-out of each request; all run concurrently. */
const patienceMs = 4000

interface Asked {
  readonly findings: readonly Finding[]
  readonly clocks: readonly ClockSample[]
}

export async function askOthers(config: Config, isHere: boolean): Promise<Asked> {
  const { phoneRoutes, smtp, publicUrl } = config
  const providers = new Map<string, string>()
  for (const { name, endpoint } of providersOf(Object.values(phoneRoutes).flat())) {
    if (endpoint !== undefined) providers.set(`${name} ${new URL(endpoint).origin}`, name)
  }
  const asking: Promise<Asked>[] = [...providers].map(([key, name]) => {
    const origin = key.slice(name.length + 1)
    return ask(`${origin}/`, (host, answer) => providerFinding(name, host, answer))
  })
  if (smtp) {
    const mailer = createSmtpMailer(smtp, patienceMs)
    const { host, port } = smtp.server
    asking.push(
      mailer.verify(patienceMs).then((reason) => {
        mailer.close()
        return { findings: [mailFinding(`${host}:${port}`, reason)], clocks: [] }
      }),
    )
  }
  if (publicUrl !== undefined) {
    asking.push(ask(`${publicUrl}/health`, publicUrlFinding))
    if (publicUrl.startsWith('https:')) asking.push(certificateOf(new URL(publicUrl)))
  }
  const { webhook } = config.alerts
  if (webhook) asking.push(ask(`${new URL(webhook.url).origin}/`, alertFinding))
  if (config.tracing) asking.push(ask(config.tracing.url, collectorFinding))
  if (config.port !== 0 && isHere) asking.push(ask(`${ownUrl(config)}/health`, serverFinding))
  const answers = await Promise.all(asking)
  return {
    findings: answers.flatMap(({ findings }) => findings),
    clocks: answers.flatMap(({ clocks }) => clocks),
  }
}

async function ask(url: string, find: (host: string, answer: Reach) => Finding): Promise<Asked> {
  const { host, hostname } = new URL(url)
  const answer = await reach(url, patienceMs)
  const clocks =
    answer.kind === 'answered' && answer.date !== null
      ? [{ from: host, aheadMs: Date.now() - answer.date, isThisMachine: isLoopback(hostname) }]
      : []
  return { findings: [find(host, answer)], clocks }
}

async function certificateOf(url: URL): Promise<Asked> {
  const end = await certificateEnd(url, patienceMs)
  return { findings: certificateFinding(url.host, end, Date.now()), clocks: [] }
}

function ownUrl({ host, port }: Config): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${local.includes(':') ? `[${local}]` : local}:${port}`
}

type Unreached = Exclude<Reach, { kind: 'answered' }>

/** The message and the remedy. */
function unreached(host: string, { kind, code }: Unreached): readonly [string, string] {
  switch (kind) {
    case 'name':
      return [
        `The host name of ${host} is not in the DNS (${code}).`,
        'Correct the name, or the DNS servers of this machine (/etc/resolv.conf).',
      ]
    case 'refused':
      return [
        `${host} refuses connections (${code}).`,
        'Start the service there, correct the host and port, or open the firewall.',
      ]
    case 'time-out':
      return [
        `${host} did not answer in time.`,
        'Open the firewall for connections from this machine. If the host is overloaded, try again later.',
      ]
    case 'certificate':
      return [`The certificate of ${host} is not trusted (${code}).`, certificateRemedy(code)]
    case 'proxy':
      return [
        `The proxy in HTTPS_PROXY rejects connections to ${host}.`,
        'Correct or unset HTTPS_PROXY, or allow the host in the proxy.',
      ]
    case 'other':
      return [`The request to ${host} failed (${code}).`, 'Correct the URL, and see the log of that host.']
  }
}

function certificateRemedy(code: string): string {
  if (code.includes('EXPIRED') || code.includes('NOT_YET_VALID')) {
    return 'The certificate has expired or is not valid yet. Renew it on that host, and check the clock of this machine.'
  }
  if (code.includes('ALTNAME')) return 'The certificate is for another host name. Use that name in the URL.'
  return 'Set NODE_EXTRA_CA_CERTS to your own CA, send the whole certificate chain, or install ca-certificates.'
}

export function providerFinding(name: string, host: string, reach: Reach): Finding {
  const what = `SMS ${name}`
  if (reach.kind !== 'answered') return fail(what, ...unreached(host, reach))
  const tookMs = Math.round(reach.tookMs)
  return ok(what, `${host} answers, in ${tookMs} ms. No message was sent.`)
}

/** @param reason undefined: connection and login work */
function mailFinding(host: string, reason: string | undefined): Finding {
  if (reason === undefined) return ok('SMTP', `${host} answers and accepts the login, if one is set.`)
  return fail('SMTP', `${host} cannot be used (${reason}).`, mailRemedy(reason))
}

function mailRemedy(reason: string): string {
  if (/^SMTP 5(30|34|35|38)$|^EAUTH$/.test(reason)) return 'Correct the user and password in SMTP_URL.'
  if (/CERT|LEAF_SIGNATURE|ERR_TLS|ERR_SSL|EPROTO/.test(reason)) {
    return 'Set SMTP_CA_FILE to your own CA, or tls.servername in SMTP_URL to the name in the certificate.'
  }
  if (reason === 'time-out')
    return 'Correct the host and port in SMTP_URL, or open the firewall for connections from this machine.'
  return 'Correct SMTP_URL, and see the log of the mail server.'
}

/** Any status is fine. The server works without the receiver. */
function alertFinding(host: string, reach: Reach): Finding {
  return reach.kind === 'answered'
    ? ok('ALERT_WEBHOOK_URL', `${host} answers. No alert was sent.`)
    : warn('ALERT_WEBHOOK_URL', ...unreached(host, reach))
}

/** Any status is fine. The server works without the collector. */
export function collectorFinding(host: string, reach: Reach): Finding {
  return reach.kind === 'answered'
    ? ok('traces', `The trace collector at ${host} answers.`)
    : warn('traces', ...unreached(host, reach))
}

export function publicUrlFinding(host: string, reach: Reach): Finding {
  const what = 'PUBLIC_URL'
  const fromHere =
    'Some networks block connections of a machine to its own public IP address, so also try from another machine.'
  if (reach.kind !== 'answered') {
    const [message, remedy] = unreached(host, reach)
    return warn(what, message, `${remedy} ${fromHere}`)
  }
  if (isHealthy(reach)) return ok(what, `${host} leads to otpost.`)
  return warn(
    what,
    `${host}/health answers ${reach.status}, which is not an answer of otpost.`,
    `Configure the proxy to forward requests for ${host} to otpost. ${fromHere}`,
  )
}

export function serverFinding(host: string, reach: Reach): Finding {
  const what = 'server'
  if (reach.kind !== 'answered') {
    return warn(
      what,
      `No server answers at ${host} (${reach.code}).`,
      'Run `otpost serve` with the same HOST and PORT.',
    )
  }
  if (isHealthy(reach)) return ok(what, `The server answers at ${host}.`)
  if (reach.status === 503)
    return fail(what, `The server at ${host} cannot use its database.`, 'See its log.')
  return fail(
    what,
    `Another program listens at ${host}: it answers ${reach.status} at /health.`,
    'Stop that program, or choose another PORT.',
  )
}

function isHealthy({ status, text }: Extract<Reach, { kind: 'answered' }>): boolean {
  return status === 200 && /"status":\s*"ok"/.test(text) && /"checks"/.test(text)
}

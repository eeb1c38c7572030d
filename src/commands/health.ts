import { get } from 'node:http'
import type { Command } from 'commander'
import { serverSettings } from '../config/server-settings.ts'
import { Settings } from '../config/settings.ts'
import { OperatorError } from '../domain/ground/operator-error.ts'
import { type Env, print, wholeNumber } from './common.ts'

/** Containers run it every few seconds, so it does not load the service. */
export function healthCommands(program: Command, env: Env): void {
  program
    .command('health')
    .description('check that the server at HOST and PORT is ready; exits with status 1 if it is not')
    // More than the 2 s after which the server reports a disk that hangs.
    .option('--timeout <seconds>', 'how long to wait for the answer', wholeNumber, 4)
    .action(async ({ timeout }: { timeout: number }) => {
      const origin = originOf(new Settings(env))
      print(`${origin} is ${await readinessOf(origin, timeout)}`)
    })
}

function originOf(settings: Settings): string {
  const host = settings.text(serverSettings.HOST).trim()
  const port = settings.integer(serverSettings.PORT)
  if (port === 0)
    settings.refuse('PORT', 'is 0, so the server chose a free port. Set PORT to the port in the server log')
  // A server on all IP addresses also listens on loopback.
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const origin = `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
  if (!URL.canParse(origin)) settings.refuse('HOST', 'must be an IP address or a host name')
  return settings.checked(origin)
}

const remedies: Readonly<Record<string, string>> = {
  draining: 'The server is stopping.',
  unavailable: 'The server cannot use its database. See its log, and run `otpost doctor`.',
}

/** @throws OperatorError unless the server is ready */
async function readinessOf(origin: string, timeoutSeconds: number): Promise<'ready'> {
  const { status, text } = await ask(`${origin}/health/ready`, timeoutSeconds).catch((error: unknown) => {
    const isLate = (error as { name?: unknown }).name === 'AbortError'
    throw new OperatorError(
      isLate
        ? `${origin} did not answer within ${timeoutSeconds} s. See its log.`
        : `${origin} cannot be reached. Check that the server is running, and that HOST and PORT are the same here as for the server.`,
    )
  })
  const state = /"status":"(\w+)"/.exec(text)?.[1] ?? ''
  if (status === 200 && state === 'ready') return state
  const remedy = remedies[state]
  throw new OperatorError(
    remedy === undefined
      ? `${origin} answered HTTP ${status}, which is not an answer of this version of otpost.`
      : `${origin} is ${state}. ${remedy}`,
  )
}

/** Unlike fetch, ignores HTTP_PROXY. */
function ask(url: string, timeoutSeconds: number): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const signal = AbortSignal.timeout(timeoutSeconds * 1000)
  get(url, { signal, agent: false }, async (answer) => {
    try {
      const chunks: Buffer[] = []
      for await (const chunk of answer) chunks.push(chunk)
      resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
    } catch (error) {
      reject(error)
    }
  }).on('error', reject)
  return promise
}

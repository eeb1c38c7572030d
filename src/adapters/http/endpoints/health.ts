import { Type } from '@sinclair/typebox'
import { answered, anyCall, type Call, get } from '../endpoint.ts'
import { answer, oneOf } from '../schema.ts'

function health(title: string, state: 'ok' | 'unavailable', description: string) {
  return answer(
    title,
    {
      status: Type.Literal(state),
      version: Type.String({ description: 'The version of the service.' }),
      checks: Type.Object({ database: Type.Literal(state) }),
    },
    description,
  )
}

const healthOf = (version: string, database: string) => ({ status: database, version, checks: { database } })

export const getHealth = get({
  path: '/health',
  tag: 'Operation',
  id: 'getHealth',
  summary: 'Whether the service works',
  description: 'For load balancers and monitoring. No credentials, and no limit counts it.',
  answers: {
    200: answered(health('Health', 'ok', 'The service works.'), { ok: ['Works', healthOf('0.1.0', 'ok')] }),
    503: answered(
      health('Unhealthy', 'unavailable', 'The database cannot be used, so no other request works.'),
      { unavailable: ['Does not work', healthOf('0.1.0', 'unavailable')] },
    ),
  },
  failures: anyCall,
  answer: async (call) => {
    const database = (await isDatabaseUp(call)) ? 'ok' : 'unavailable'
    if (database !== 'ok') call.context.status = 503
    return healthOf(call.server.version, database)
  },
})

export const getLiveness = get({
  path: '/health/live',
  tag: 'Operation',
  id: 'getLiveness',
  summary: 'Whether the process answers',
  description:
    'For a supervisor that restarts a process that hangs. It does not check the database, since a restart does not repair it.',
  answers: {
    200: answered(answer('Live', { status: Type.Literal('ok') }, 'The process is running.'), {
      ok: ['Answers', { status: 'ok' }],
    }),
  },
  failures: anyCall,
  answer: () => ({ status: 'ok' }),
})

const notReady = oneOf(['draining', 'unavailable'], {
  description:
    '`draining`: the server is stopping and still serves requests. `unavailable`: the database cannot be used.',
})

export const getReadiness = get({
  path: '/health/ready',
  tag: 'Operation',
  id: 'getReadiness',
  summary: 'Whether the server accepts requests',
  description:
    'For load balancers. Returns 503 when a shutdown begins. The server still serves requests for SHUTDOWN_DELAY_SECONDS.',
  answers: {
    200: answered(answer('Ready', { status: Type.Literal('ready') }, 'The server accepts requests.'), {
      ready: ['Ready', { status: 'ready' }],
    }),
    503: answered(answer('NotReady', { status: notReady }, 'Send requests to another server.'), {
      draining: ['Stopping', { status: 'draining' }],
      unavailable: ['Does not work', { status: 'unavailable' }],
    }),
  },
  failures: anyCall,
  answer: async (call) => {
    const { context, server } = call
    const status = server.isStopping() ? 'draining' : (await isDatabaseUp(call)) ? 'ready' : 'unavailable'
    if (status !== 'ready') context.status = 503
    return { status }
  },
})

async function isDatabaseUp({ ports, server }: Call): Promise<boolean> {
  try {
    await ports.checkDatabase()
    return true
  } catch (error) {
    server.log.error({ err: error }, 'the database cannot be used')
    return false
  }
}

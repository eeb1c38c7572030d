import { randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import { setTimeout as sleep } from 'node:timers/promises'

const { OTPOST_URL, OTPOST_API_KEY, OTPOST_BRAND_ID: brandId } = process.env
const temporary = ['rate_limited', 'unavailable', 'idempotency_in_progress']

/** Returns the JSON answer of otpost, also for errors. Makes up to three attempts. */
async function call(path, fields) {
  const request = {
    method: 'POST',
    headers: {
      authorization: `Bearer ${OTPOST_API_KEY}`,
      'content-type': 'application/json',
      // The same in each attempt: the message is sent once, and the code is compared once.
      'idempotency-key': randomUUID(),
    },
    body: JSON.stringify({ brandId, ...fields }),
    redirect: 'error',
  }
  for (let attempt = 1; ; attempt++) {
    let pause = attempt
    try {
      const response = await fetch(OTPOST_URL + path, { ...request, signal: AbortSignal.timeout(15_000) })
      const answer = await response.json()
      pause = Number(response.headers.get('retry-after') ?? attempt)
      // A person waits: return the error if the pause would be long.
      if (attempt === 3 || !temporary.includes(answer.error) || pause > 5) return answer
    } catch (error) {
      // No answer: a time-out, or the connection broke.
      if (attempt === 3) throw error
    }
    await sleep(pause * 1000)
  }
}

const [, , phone = '+1 202 555 0143'] = process.argv
const sent = await call('/otp/send', { phone })
if (!sent.success) throw new Error(`not sent: ${JSON.stringify(sent)}`)
console.log('expires in', sent.expiresIn)

const terminal = createInterface({ input: process.stdin })
const code = await terminal.question('')
terminal.close()
const verified = await call('/otp/verify', { phone, otp: code.trim() })
if (verified.success) console.log('verified')
else if (verified.error === 'mismatch') console.log('wrong code')
else console.log('not verified:', JSON.stringify(verified))

import { ZxcvbnFactory } from '@zxcvbn-ts/core'
import { adjacencyGraphs, dictionary } from '@zxcvbn-ts/language-common'

/** In code points after NFC (NIST SP 800-63B-4 section 3.1.1.2). */
const minLength = 15
const maxLength = 256

/** At the console's limit of 9,120 guesses a day, these take 3,000 years. */
const minGuesses = 1e10

const ownWords = ['otpost', 'console', 'administrator', 'operator', 'correcthorsebatterystaple']

/** Undefined for an accepted password. `context`: the user name and the server's host names. */
export function passwordProblem(password: string, context: readonly string[]): string | undefined {
  const text = password.normalize('NFC')
  const { length } = [...text]
  if (length < minLength || length > maxLength) {
    return `The password has ${length} characters. It must have ${minLength} to ${maxLength}.`
  }
  if (/\p{Cc}/u.test(text)) {
    return 'The password has a control character, which browsers cannot send. Use printable characters and spaces.'
  }
  const words = [...ownWords, ...context].flatMap((each) => [each, ...each.split(/[^\p{L}\p{N}]+/u)])
  const longWords = words.filter((word) => word.length > 2)
  const estimator = new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs })
  const isWeak = (tried: string) => estimator.check(tried, longWords).guesses < minGuesses
  // Spaces and punctuation between common words do not make them rare.
  if (!isWeak(text) && !isWeak(text.replaceAll(/[\s\p{P}]+/gu, ''))) return undefined
  return 'The password is easy to guess: it consists of common passwords, repeated or sequential characters, or words about this server. Use five random words, or the output of `openssl rand -base64 18`.'
}

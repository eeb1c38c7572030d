import { ZxcvbnFactory } from '@zxcvbn-ts/core'
import { adjacencyGraphs, dictionary } from '@zxcvbn-ts/language-common'

/** In code points after NFC (NIST SP 800-63B-4 section 3.1.1.2); any printable character counts, also a space. */
const minLength = 15
const maxLength = 256

/** Fewer guesses than this are too few. At the 9,120 a day that the console checks, they take 3,000 years. */
const minGuesses = 1e10

/** Words of this service, and passphrases of textbooks. */
const ownWords = ['otpost', 'console', 'administrator', 'operator', 'correcthorsebatterystaple']

/**
 * Why a new console password is rejected and what to do; undefined where it is accepted. There are no rules about kinds of
 * characters: it must not be made of common passwords, repetitions, sequences, keyboard rows, dates and context words.
 *
 * @param context the user name and the host names of the server
 */
export function passwordProblem(password: string, context: readonly string[]): string | undefined {
  const text = password.normalize('NFC')
  const { length } = [...text]
  if (length < minLength || length > maxLength) {
    return `The password has ${length} characters. It must have ${minLength} to ${maxLength}.`
  }
  if (/\p{Cc}/u.test(text)) {
    return 'The password has a control character, which browsers can not send. Use printable characters and spaces.'
  }
  const words = [...ownWords, ...context].flatMap((each) => [each, ...each.split(/[^\p{L}\p{N}]+/u)])
  const longWords = words.filter((word) => word.length > 2)
  const estimator = new ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs })
  const isWeak = (tried: string) => estimator.check(tried, longWords).guesses < minGuesses
  // Spaces and punctuation between common words do not make them rare.
  if (!isWeak(text) && !isWeak(text.replaceAll(/[\s\p{P}]+/gu, ''))) return undefined
  return 'The password is easy to guess: it consists of common passwords, repeated or sequential characters, or words about this server. Use five random words, or the output of: openssl rand -base64 18'
}

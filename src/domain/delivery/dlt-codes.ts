/**
 * Why the carriers' DLT platforms (India) reject a message, by the code in its delivery report. The carriers share these
 * codes (support.exotel.com, "DLT platform error codes in India").
 */
const codes: ReadonlyMap<string, string> = new Map([
  ['600', 'the entity ID is not known'],
  ['601', 'the entity is not registered'],
  ['602', 'the entity is inactive'],
  ['603', 'the entity is blocked'],
  ['604', 'the entity ID is missing or has a wrong form'],
  ['605', 'the entity does not allow this telemarketer'],
  ['610', 'the telemarketer is not registered'],
  ['611', 'the telemarketer is inactive'],
  ['612', 'the telemarketer is blocked'],
  ['613', 'the entity does not allow this telemarketer'],
  ['620', 'the header is not known; upper and lower case differ'],
  ['621', 'the header is inactive'],
  ['622', 'the header is blocked'],
  ['623', 'the header is of another entity'],
  ['630', 'the template ID is not known'],
  ['631', 'the template is inactive'],
  ['632', 'the template is blocked'],
  ['633', 'the text differs from the registered template'],
  ['634', 'the header is not registered for the template'],
  ['635', 'a value is longer than its variable allows'],
  ['636', 'the template could not be identified'],
  ['637', 'the template ID has a wrong form'],
  ['670', 'the check itself failed'],
  // Of Vonage.
  ['err-code 50', 'the entity ID is wrong or missing'],
  ['err-code 51', 'the header is wrong or missing'],
  ['err-code 52', 'the template ID or the text is wrong'],
  ['err-code 53', 'the consent of the recipient is missing'],
])

const subjects: ReadonlyMap<string, string> = new Map([
  ['60', 'the entity was rejected'],
  ['61', 'the telemarketer was rejected'],
  ['62', 'the header was rejected'],
  ['63', 'the template was rejected'],
])

/**
 * @param reason of a delivery report, such as `err 633` or `633`
 * @returns undefined: not a code of these platforms
 */
export function dltWords(reason: string): string | undefined {
  const [, code = reason, subject = ''] = /^(?:err )?((6\d)\d)$/.exec(reason) ?? []
  return codes.get(code) ?? subjects.get(subject)
}

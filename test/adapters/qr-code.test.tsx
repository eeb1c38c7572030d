/** @jsxImportSource preact */
import { expect, test } from 'bun:test'
import jsQr from 'jsqr'
import { renderToString } from 'preact-render-to-string'
import { QrCode } from '../../src/adapters/console/account/qr-code.tsx'
import { newTotpSecret, totpUri } from '../../src/adapters/crypto/totp.ts'

const pixelsEach = 4

/** What a scanner reads in the image. */
function scanned(svg: string): string | undefined {
  const size = Number(/viewBox="0 0 (\d+) /.exec(svg)?.[1])
  const width = size * pixelsEach
  const pixels = new Uint8ClampedArray(4 * width * width).fill(255)
  for (const [, x, y, length] of svg.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g)) {
    for (let row = Number(y) * pixelsEach; row < (Number(y) + 1) * pixelsEach; row++) {
      const start = row * width + Number(x) * pixelsEach
      for (let at = start; at < start + Number(length) * pixelsEach; at++) pixels.fill(0, 4 * at, 4 * at + 3)
    }
  }
  return jsQr(pixels, width, width, { inversionAttempts: 'dontInvert' })?.data
}

test.each([
  'a@b.co',
  'an.operator.with.a.long.name+console@mail.example.com',
  `${'x'.repeat(64)}@${'y'.repeat(180)}.com`,
])('a QR code has the secret for an authenticator app: %s', (email) => {
  const uri = totpUri(newTotpSecret(), email, 'otp.example.com')
  const svg = renderToString(<QrCode text={uri} label="QR code" />)
  expect(scanned(svg)).toBe(uri)
  expect(svg).toContain('role="img" aria-label="QR code"')
  expect(svg).not.toContain('style')
})

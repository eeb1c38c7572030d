import { expect } from 'bun:test'
import type { Page } from 'playwright-core'

// What a page looks like and how it is used: for people with a keyboard, a screen reader or a phone, in light and dark.

const axe = await Bun.file(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir)).text()
export const narrow = { width: 375, height: 740 }
export const wide = { width: 1280, height: 800 }

export const sections = (page: Page) => page.getByRole('navigation', { name: 'Console' })

/** Nothing reaches beyond the edges of the window, except what scrolls by itself. */
export async function expectNoOverflow(page: Page, what: string): Promise<void> {
  const outside = await page.evaluate(`(() => {
    const { scrollWidth } = document.documentElement
    if (scrollWidth <= innerWidth) return []
    const wide = [...document.querySelectorAll('body *')].filter(
      (node) => node.getBoundingClientRect().right > innerWidth + 0.5,
    )
    return [scrollWidth + ' px', ...wide.map((node) => node.outerHTML.slice(0, 120))]
  })()`)
  expect(outside, `outside of the window, ${what}`).toEqual([])
}

/**
 * Axe finds no fault in labels, landmarks, headings, contrast and more, and each drawing has a name or is hidden.
 *
 * @param rules the axe rules; all by default
 */
export async function expectAccessible(page: Page, what: string, rules?: readonly string[]): Promise<void> {
  if (await page.evaluate('!globalThis.axe')) await page.evaluate(axe)
  const violations = await page.evaluate(`
    axe.run(document, { resultTypes: ['violations'], preload: false, ...${JSON.stringify(rules ? { runOnly: rules } : {})} }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map((node) => [id, node.target.join(' '), node.failureSummary])))`)
  expect(violations, what).toEqual([])
  const unnamed = await page.evaluate(`[...document.querySelectorAll('svg, canvas, img')]
    .filter((node) => !node.closest('[aria-hidden=true], [aria-label], [alt]'))
    .map((node) => node.outerHTML.slice(0, 120))`)
  expect(unnamed, what).toEqual([])
}

/** The Tab key reaches every control, the skip link first, and the focus is visible. */
export async function expectKeyboard(page: Page, what: string): Promise<void> {
  // A window that has just changed its width has its new layout two frames later.
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  const count = await page.evaluate<number>(`(() => {
    // The Tab key continues from here, not from the last focus.
    const start = document.createElement('span')
    start.tabIndex = -1
    document.body.prepend(start)
    start.focus()
    start.remove()
    globalThis.stops = new Map()
    addEventListener('focusin', ({ target }) => {
      const { outlineStyle, outlineWidth } = getComputedStyle(target)
      const { width, right, bottom } = target.getBoundingClientRect()
      const isSeen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1 && width > 0 && right > 0 && bottom > 0
      stops.set(target, isSeen)
    })
    // Asked again after the keys: a window that has just changed its width may still show what it hides a moment later.
    globalThis.usable = () => [...document.querySelectorAll('a[href], button, input, textarea, select, summary')].filter(
      (node) => node.checkVisibility({ visibilityProperty: true }) && !node.matches(':disabled') && node.tabIndex >= 0,
    )
    return usable().length
  })()`)
  // A slow page may move the focus once more while it loads.
  for (let rounds = 0; rounds < 3; rounds++) {
    for (let pressed = 0; pressed < count + 3; pressed++) await page.keyboard.press('Tab')
    if (await page.evaluate<boolean>('usable().every((node) => stops.has(node))')) break
  }
  const { first, lost, unseen } = await page.evaluate<{
    first: string
    lost: string[]
    unseen: string[]
  }>(`(() => {
    const told = (nodes) => nodes.map((node) => node.outerHTML.slice(0, 160))
    return {
      first: [...stops.keys()][0]?.textContent ?? '',
      lost: told(usable().filter((node) => !stops.has(node))),
      unseen: told([...stops].flatMap(([node, isSeen]) => (isSeen ? [] : [node]))),
    }
  })()`)
  expect({ lost, unseen }, what).toEqual({ lost: [], unseen: [] })
  if (await sections(page).isVisible()) expect(first, what).toBe('Skip to content')
}

/** Runs a scenario on a desktop with a light theme and on a phone with a dark theme. */
export async function expectGoodLooks(page: Page, what: string): Promise<void> {
  const before = page.viewportSize() ?? wide
  for (const [viewport, colorScheme, rules] of [
    [wide, 'light', undefined],
    // The text is the same in both; only the looks differ.
    [narrow, 'dark', ['color-contrast', 'scrollable-region-focusable']],
  ] as const) {
    await page.setViewportSize(viewport)
    await page.emulateMedia({ colorScheme })
    await expectAccessible(page, `${what}, ${colorScheme}, at ${viewport.width} px`, rules)
    await expectNoOverflow(page, `${what}, at ${viewport.width} px`)
  }
  await page.setViewportSize(before)
  expect(await page.getByRole('heading', { level: 1 }).count(), what).toBe(1)
}

import { contents, type Entry, siteUrl, slugOf } from './pages.ts'

// The settings of VitePress: https://vitepress.dev/reference/site-config

const base = siteUrl === '/' ? siteUrl : new URL(siteUrl).pathname

/** Of markdown-it. */
type Rules = Record<'text' | 'code_inline', (...given: unknown[]) => string>

interface Item {
  text: string
  link?: string
  items?: Item[]
  collapsed?: boolean
}

/** A group is a link too: VitePress nests buttons of groups that are none. */
function itemOf({ text, path, items }: Entry): Item {
  const link = `/${(path ?? items?.[0]?.path ?? '').replace(/(?:index)?\.md$/, '')}`
  return { text, link, ...(items ? { items: items.map(itemOf), collapsed: true } : {}) }
}

const sections = contents().map(({ text, items = [] }) => ({
  text,
  link: `/contents#${slugOf(text)}`,
  items: items.map(itemOf),
}))

// In the default theme, names of languages have too little contrast, and the key on the button is not in its name.
const style = `html:root { --vp-code-lang-color: var(--vp-c-text-2) }
html .DocSearch-Button-Keys.DocSearch-Button-Keys { display: none }`

export default {
  title: 'otpost',
  base,
  lang: 'en',
  outDir: '../site',
  ignoreDeadLinks: 'localhostLinks',
  head: [['style', {}, style]],
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: slugOf },
    attrs: { disable: true },
    // Vue would take {{name}} as an expression.
    config({ renderer: { rules } }: { renderer: { rules: Rules } }) {
      for (const name of ['text', 'code_inline'] as const) {
        const rule = rules[name]
        rules[name] = (...given) => rule(...given).replaceAll('{{', '&#123;{')
      }
    },
  },
  transformHead: ({ pageData: { relativePath: path } }: { pageData: { relativePath: string } }) =>
    path === '404.md' ? [] : [['link', { rel: 'alternate', type: 'text/markdown', href: `${base}${path}` }]],
  themeConfig: {
    nav: [{ text: 'Contents', link: '/contents' }],
    sidebar: sections,
    outline: [2, 3],
    docFooter: { prev: false, next: false },
    search: { provider: 'local' },
  },
}

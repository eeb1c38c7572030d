import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { migrations as postgresMigrations } from '../drizzle/postgres/migrations.ts'
import { migrations as sqliteMigrations } from '../drizzle/sqlite/migrations.ts'
import packageJson from '../package.json'

const root = join(import.meta.dir, '..')

interface SourceFile {
  /** The path from the project's root, such as `src/domain/otp/store.ts`. */
  readonly path: string
  /** The text without comments. */
  readonly code: string
  /** Its imports, including types: a path from the project's root, or a package name. */
  readonly imports: readonly string[]
}

const sources: readonly SourceFile[] = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.d.ts'))
  .map((file) => {
    const path = join('src', file)
    const code = withoutComments(readFileSync(join(root, path), 'utf8'))
    return { path, code, imports: importsOf(code).map((specifier) => resolved(path, specifier)) }
  })

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|(?<![:'"`\\])\/\/.*$/gm, '')
}

/** Matches every form of import: import, import type, export from, import() in code and in types, require. */
function importsOf(code: string): string[] {
  return [...code.matchAll(/\b(?:from|import|require)\s*\(?\s*(['"`])([^'"`\n]+)\1/g)].map(
    ([, , specifier = '']) => specifier,
  )
}

function resolved(path: string, specifier: string): string {
  return specifier.startsWith('.') ? normalize(join(dirname(path), specifier)) : specifier
}

/** The adapter of a path, such as `http`. */
function adapterOf(path: string): string | undefined {
  return /^src\/adapters\/([^/]+)/.exec(path)?.[1]
}

/** Each group of files that import each other, directly or indirectly. */
function circlesIn(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const reachable = new Map(
    Array.from(imports.keys(), (start) => {
      const found = new Set<string>()
      const waiting = [start]
      for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
        for (const next of imports.get(path) ?? []) {
          if (!found.has(next)) waiting.push(next)
          found.add(next)
        }
      }
      return [start, found] as const
    }),
  )
  const circleOf = (path: string) =>
    [...(reachable.get(path) ?? [])].filter((other) => reachable.get(other)?.has(path)).sort()
  const circles = Array.from(imports.keys(), circleOf).filter((circle) => circle.length > 0)
  return [...new Map(circles.map((circle) => [circle.join(), circle])).values()]
}

/** Each import that breaks a rule, as `importing file imports path`. */
function importsWhere(breaks: (file: SourceFile, imported: string) => boolean): string[] {
  return sources.flatMap((file) =>
    file.imports.filter((imported) => breaks(file, imported)).map((it) => `${file.path} imports ${it}`),
  )
}

/** Each place where the code of a file matches a forbidden pattern. */
function codeWhere(pattern: RegExp, allowed: (file: SourceFile, found: string) => boolean): string[] {
  return sources.flatMap((file) =>
    [...file.code.matchAll(pattern)]
      .filter(([found]) => !allowed(file, found))
      .map(([found]) => `${file.path} says ${found}`),
  )
}

const isCommand = (path: string) => path.startsWith('src/commands/')
const isDomain = ({ path }: SourceFile) => path.startsWith('src/domain/')

/** The rooms of src/domain, the lowest first. */
const rooms = (
  /```text\n([^`]*)```/.exec(readFileSync(join(root, 'docs/engineering/architecture.md'), 'utf8'))?.[1] ?? ''
)
  .split('\n')
  .flatMap((line) => /^[a-z]+/.exec(line)?.[0] ?? [])
  .reverse()

test('importsOf finds every form of import', () => {
  const code = `
    import a from './a.ts'
    import type { B } from "./b.ts"
    import { type C,
      d } from './c.ts'
    import './e.ts'
    export * from './f.ts'
    export type { G } from './g.ts'
    const h = await import('./h.ts')
    type I = import('./i.ts').I
    const j = require('./j.ts')
    // import k from './k.ts'
    const url = 'https://example.com/' /* import l from './l.ts' */`
  expect(importsOf(withoutComments(code)).join(' ')).toBe(
    './a.ts ./b.ts ./c.ts ./e.ts ./f.ts ./g.ts ./h.ts ./i.ts ./j.ts',
  )
  expect(sources.length).toBeGreaterThan(20)
  expect(sources.filter(isDomain).length).toBeGreaterThan(5)
})

test('circlesIn returns the files of a circular import', () => {
  const graph = { a: ['b', 'elysia'], b: ['c'], c: ['a', 'd'], d: [], e: ['f'], f: ['e'], g: ['g'] }
  expect(circlesIn(new Map(Object.entries(graph)))).toEqual([['a', 'b', 'c'], ['e', 'f'], ['g']])
})

describe('imports', () => {
  test('of the domain are its own files', () => {
    expect(
      importsWhere((file, imported) => isDomain(file) && !imported.startsWith('src/domain/')),
      'The domain must not depend on an adapter: src/domain imports no package, no node: module and no adapter, not even a type. Declare a port in src/domain and implement it in an adapter.',
    ).toEqual([])
  })

  test('of a room go down the ladder', () => {
    const roomOf = (path: string) => rooms.indexOf(/^src\/domain\/([^/]+)\//.exec(path)?.[1] ?? '')
    expect(
      importsWhere((file, imported) => isDomain(file) && roomOf(imported) > roomOf(file.path)),
      'docs/engineering/architecture.md has the order of the rooms of src/domain. Move what both need to the lower room.',
    ).toEqual([])
    expect(new Set(sources.filter(isDomain).map(({ path }) => path.split('/')[2]))).toEqual(new Set(rooms))
    expect(rooms.length).toBeLessThanOrEqual(15)
  })

  test('of an adapter are its own files, the domain, and the shared adapters', () => {
    const shared: Readonly<Record<string, readonly string[]>> = {
      sqlite: ['store', 'crypto'],
      postgres: ['store', 'crypto'],
      sms: ['crypto'],
      alerts: ['crypto'],
      events: ['crypto'],
      http: ['pages', 'crypto'],
      console: ['pages'],
      outbox: ['pages'],
    }
    expect(
      importsWhere(({ path }, imported) => {
        const [own, other] = [adapterOf(path), adapterOf(imported)]
        if (own === undefined || other === undefined || own === other) return false
        return !shared[own]?.includes(other)
      }),
      'An adapter can be replaced only if no other adapter imports it. Pass its dependencies as ports, in src/app.ts.',
    ).toEqual([])
  })

  test('of adapters are in src/app.ts, src/parts, src/context.ts, src/config, src/doctor and src/commands', () => {
    expect(
      importsWhere(
        ({ path }, imported) =>
          adapterOf(imported) !== undefined &&
          adapterOf(path) === undefined &&
          !/^src\/(?:app\.ts|parts\/|context\.ts|secret-key\.ts|config\/|doctor\/|commands\/)/.test(path),
      ),
      'Adapters are wired in src/app.ts and src/parts, and in src/context.ts for commands. src/config reads the settings of adapters.',
    ).toEqual([])
  })

  test('of an adapter never include the files that wire it', () => {
    expect(
      importsWhere(
        ({ path }, imported) =>
          adapterOf(path) !== undefined &&
          /^src\/(?:app\.ts|parts\/|context\.ts|main\.ts|config\/(?!(?:server-)?settings?\.ts)|doctor\/|commands\/)/.test(
            imported,
          ),
      ),
      'An adapter gets its dependencies as arguments. An adapter that imports its composition root cannot be used or tested alone.',
    ).toEqual([])
  })

  test('have no cycles, including types', () => {
    expect(
      circlesIn(new Map(sources.map(({ path, imports }) => [path, imports]))),
      'Files that import each other can only be understood together. Move their shared code to a file that both import.',
    ).toEqual([])
  })

  test.each([
    ['elysia', 'src/adapters/http src/adapters/console src/adapters/outbox src/adapters/pages'],
    ['drizzle-orm', 'src/adapters/sqlite src/adapters/postgres src/adapters/store'],
    ['pg', 'src/adapters/postgres'],
    ['better-sqlite3', 'src/adapters/sqlite'],
    ['nodemailer', 'src/adapters/email'],
    ['html-to-text', 'src/adapters/email'],
    ['libphonenumber-js', 'src/adapters/phone'],
    ['tlds', 'src/adapters/sms'],
    ['papaparse', 'src/adapters/prices'],
    ['aws4fetch', 'src/adapters/sms'],
    ['@zxcvbn-ts/core', 'src/adapters/crypto'],
    ['@zxcvbn-ts/language-common', 'src/adapters/crypto'],
    ['sms-segments-calculator', 'src/adapters/sms'],
    ['preact', 'src/adapters/console src/adapters/http src/adapters/outbox src/adapters/pages'],
    ['preact-render-to-string', 'src/adapters/console src/adapters/outbox src/adapters/pages'],
    ['uplot', 'src/adapters/console'],
    ['diff', 'src/adapters/console'],
    ['pino', 'src/adapters/log'],
    ['prom-client', 'src/adapters/metrics'],
    ['@opentelemetry', 'src/adapters/tracing'],
    ['commander', 'src/main.ts src/commands/'],
  ])('of %s are in %s only', (name, home) => {
    const isOf = (imported: string) => imported === name || imported.startsWith(`${name}/`)
    expect(
      importsWhere(
        (file, imported) => isOf(imported) && !home.split(' ').some((place) => file.path.startsWith(place)),
      ),
      `Whoever replaces ${name} should have to open ${home} and nothing else.`,
    ).toEqual([])
    expect(sources.some(({ imports }) => imports.some(isOf))).toBe(true)
  })
})

describe('outside access', () => {
  test('by globals does not exist in the domain', () => {
    const world =
      /\b(?:Date\.now|new Date\(\)|Math\.random|crypto\.\w+|performance\.\w+|setTimeout|setInterval|setImmediate|fetch\(|Bun\.\w+|console\.(?:log|info|warn|error|debug|trace)\b|globalThis)/g
    expect(
      codeWhere(world, (file) => !isDomain(file)),
      'Time, randomness and ids are ports, so that tests can move the clock and nothing sleeps.',
    ).toEqual([])
  })

  test('by commands is not in the words of the domain', () => {
    expect(
      codeWhere(/\\`otpost |(['"])(?:(?!\1).)*`otpost /g, (file) => !isDomain(file)),
      'A text of the domain refers to actions and lists with `see`. Commands and the console word the reference.',
    ).toEqual([])
  })

  test('to process is in src/main.ts, src/commands and src/doctor only', () => {
    expect(
      codeWhere(/(?:\bglobalThis\.|(?<![.\w]))process(?:\.\w+|\[)|\bnode:process\b/g, ({ path }, found) => {
        if (path === 'src/main.ts' || isCommand(path) || path.startsWith('src/doctor/')) return true
        // Only the order of callbacks.
        if (found === 'process.nextTick') return true
        // Whether the process of unfinished work has ended.
        if (path === 'src/process-owner.ts' && /^process\.(?:pid|kill)$/.test(found)) return true
        // The name of a draft file that no other process writes.
        return adapterOf(path) === 'crypto' && found === 'process.pid'
      }),
      'Several services must run in one test process. Only src/main.ts, the commands and the checks use exits, signals, streams and arguments.',
    ).toEqual([])
  })

  test('to the environment is through src/main.ts, which passes it to src/config/config.ts', () => {
    expect(
      codeWhere(
        /\b(?:process|Bun|import\.meta)\.env\b(?:\.\w+|\[[^\]]*\])?/g,
        ({ path }, found) => path === 'src/main.ts' && found === 'process.env',
      ),
      'Settings are read and checked once, at start. An invalid variable that is read elsewhere would not be reported.',
    ).toEqual([])
  })
})

describe('migrations', () => {
  const reason = 'Migrations run in order of their creation time; a file that is not listed never runs.'

  const stores = [
    ['sqlite', sqliteMigrations],
    ['postgres', postgresMigrations],
  ] as const

  test.each(stores)('of %s are sorted by creation time', (_, migrations) => {
    const times = migrations.map(({ when }) => when)
    expect(times.length).toBeGreaterThan(0)
    expect(
      [...new Set(times)].sort((a, b) => a - b),
      reason,
    ).toEqual(times)
  })

  test.each(stores)('of %s are all listed', (store, migrations) => {
    const files = readdirSync(join(root, 'drizzle', store)).filter((file) => file.endsWith('.sql'))
    const list = readFileSync(join(root, 'drizzle', store, 'migrations.ts'), 'utf8')
    expect(
      files.filter((file) => !importsOf(withoutComments(list)).includes(`./${file}`)),
      reason,
    ).toEqual([])
    expect(migrations.map(({ tag }) => `${tag}.sql`).sort(), reason).toEqual(files.sort())
  })
})

describe('packages', () => {
  test('have exact versions', () => {
    const wanted = Object.entries({ ...packageJson.dependencies, ...packageJson.devDependencies })
    expect(
      wanted.filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/.test(version)),
      'Installed versions must equal the tested ones. A range would allow another release of a dependency.',
    ).toEqual([])
  })

  test('come from the registry that the machine is configured for', () => {
    const lock = readFileSync(join(root, 'bun.lock'), 'utf8')
    expect(
      lock.match(/https?:\/\/[^\s"]*/g) ?? [],
      'bun.lock must work with any registry: it must not contain a host name.',
    ).toEqual([])
  })
})

test('tests start the program through test/support/program.ts', async () => {
  const named: string[] = []
  for (const path of new Bun.Glob('test/**/*.{ts,tsx}').scanSync(root)) {
    if (path.includes('node_modules')) continue
    const text = await Bun.file(join(root, path)).text()
    if (/src\/main\.ts['"`]/.test(text)) named.push(path)
  }
  expect(
    named.sort(),
    'A test that starts src/main.ts itself would run the source when the compiled program is under test.',
  ).toEqual([
    'test/architecture.test.ts',
    // The commands on the pages are compared with it.
    'test/docs/commands.system.ts',
    'test/docs/sessions.system.ts',
    'test/support/program.ts',
  ])
})

test('every source file is in one of the documented folders', () => {
  const places =
    /^src\/(?:(?:main|app|context|process-owner|secret-key|version)\.ts|config\/[^/]+\.ts|parts\/[^/]+\.ts|(?:commands|doctor)\/[^/]+\.ts|domain\/[^/]+\/[^/]+\.ts|adapters\/(?:http|console|outbox|pages|sqlite|postgres|store|sms|email|crypto|phone|log|metrics|tracing|prices|alerts|events)\/.+\.tsx?)$/
  expect(
    sources.map(({ path }) => path).filter((path) => !places.test(path)),
    'src has the process, the composition root with its parts and its context; settings are in src/config, rules in src/domain by subject, everything outside in a folder of src/adapters.',
  ).toEqual([])
})

test('exported types have one meaning for each name', () => {
  const places = new Map<string, string[]>()
  for (const { path, code } of sources) {
    // The two stores have the same parts.
    const place = path.replace(/^src\/adapters\/(?:sqlite|postgres)\//, 'stores/')
    for (const [, name = ''] of code.matchAll(/^export (?:abstract )?(?:type|interface|class) (\w+)/gm))
      places.set(name, [...new Set([...(places.get(name) ?? []), place])])
  }
  expect(
    [...places].filter(([, paths]) => paths.length > 1),
    'A reader who knows a name from one file must not find another thing under it.',
  ).toEqual([])
})

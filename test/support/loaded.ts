import { readFileSync } from 'node:fs'
import { plugin } from 'bun'

// Given to a server by `--preload`: it names each module of traces that is loaded, on standard error.
plugin({
  name: 'loaded',
  setup(build) {
    build.onLoad({ filter: /node_modules\/@opentelemetry\/|src\/adapters\/tracing\// }, ({ path }) => {
      process.stderr.write(`loaded ${path}\n`)
      return { contents: readFileSync(path, 'utf8'), loader: path.endsWith('.ts') ? 'ts' : 'js' }
    })
  },
})

import { setDefaultTimeout } from 'bun:test'

// bunfig.toml loads it before each test file. A busy machine is slow, and no test waits for a time to pass.

setDefaultTimeout(120_000)

import { existsSync } from 'node:fs'

// Given to a server by `--preload`: its stopwatch runs ten seconds ahead for as long as a certain file exists.
const { STOPWATCH_AHEAD: file = '' } = process.env
const own = performance.now.bind(performance)
performance.now = () => own() + (existsSync(file) ? 10_000 : 0)

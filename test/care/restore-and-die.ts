import { restore } from '../../src/adapters/sqlite/restore.ts'

// A restore that the process does not survive: killed right before the step that is named.

const [databaseFile = '', file = '', last = ''] = Bun.argv.slice(2)
restore(databaseFile, file, {
  force: false,
  owner: { pid: process.pid, isRoot: process.getuid?.() === 0, isRunning: () => true },
  now: Date.now(),
  actor: { by: 'command', name: 'test' },
  onStep: (step) => {
    if (step === last) process.kill(process.pid, 'SIGKILL')
  },
})

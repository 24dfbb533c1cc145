// Graphile Worker with what its performance page recommends: local queue, batched completion, prepared statements.
// It finds scheduled jobs by polling, here ten times a second (every two seconds by default).
import { Logger, makeWorkerUtils, run, runMigrations } from 'graphile-worker'
import { command, enqueue, given, go, notes, ready, schedule, send, single, url } from './notes.mjs'

const logger = new Logger(() => () => {})
const worker = {
  connectionString: url, logger, maxPoolSize: 24, concurrentJobs: 24, pollInterval: 100, preparedStatements: true,
  completeJobBatchDelay: 0, failJobBatchDelay: 0, localQueue: { size: 2000 }
}

if (command === 'schema') {
  await runMigrations({ preset: { worker: { connectionString: url, logger } } })
} else if (command === 'work') {
  const call = notes(given[0])
  await go()
  const running = await run({ preset: { worker }, taskList: { noop: async payload => call(payload.due) } })
  ready()
  await running.promise
} else {
  const client = await makeWorkerUtils({ connectionString: url, logger })
  if (command === 'enqueue') {
    await enqueue(given[0], many => client.addJobs(many.map(payload => ({ identifier: 'noop', payload }))))
  } else if (command === 'schedule') {
    await schedule(...given, dues => client.addJobs(dues.map(due => ({ identifier: 'noop', payload: { due }, runAt: new Date(due * 1000) }))))
  } else if (command === 'single') {
    await single(...given, payload => client.addJob('noop', payload))
  } else if (command === 'send') {
    await send(...given, payload => client.addJob('noop', payload))
  }
  await client.release()
}

import { runScenario } from '../faults/run-scenario.js';
import { importKills } from '../faults/scenarios/import-kills.js';
import { lostAnswers } from '../faults/scenarios/lost-answers.js';
import { receiverKills } from '../faults/scenarios/receiver-kills.js';
import { findRedisServer } from '../harness/redis-server.js';
import { describeOnBothBackends } from './support/backends.js';
import { freshDatabase } from './support/databases.js';

/** About five kills of each scenario: `npm run faults` does all of them. */
const SHARE = 0.05;

describeOnBothBackends('under the faults of a short run', ({ name }) => {
  // A session whose worker was killed is looked up again a minute and a half later: that is waited for once.
  const scenarios = name === 'PostgreSQL' ? [importKills, receiverKills, lostAnswers] : [importKills, receiverKills];
  test.each(scenarios)('every law holds: $says', async (scenario) => {
    const database = await freshDatabase();
    const said: string[] = [];
    const { broken, counts } = await runScenario(scenario, {
      seed: Number(process.env.SEED),
      share: SHARE,
      databaseUrl: database.url,
      ...(name === 'Redis' && { redisServer: findRedisServer() }),
      log: (line) => said.push(line),
    });
    await database.drop();
    expect({ broken, said: broken.length > 0 ? said : [] }).toEqual({ broken: [], said: [] });
    expect(counts.kills).toBeGreaterThan(0);
  });
});

import { Injectable } from '@nestjs/common';
import { Metrics } from '../http/metrics.js';
import { StuckRepository } from './stuck.repository.js';

/** People by kind and state, and how many of them do not get on. */
@Injectable()
export class PeopleMetrics {
  constructor(metrics: Metrics, stuck: StuckRepository) {
    const stuckGauge = metrics.gauge('people_stuck', 'People in a state for longer than they should be', [
      'kind',
      'state',
    ]);
    metrics.gauge('people', 'People by kind and state', ['kind', 'state'], async (gauge) => {
      const counts = await stuck.count();
      gauge.reset();
      stuckGauge.reset();
      for (const { kind, state, people, stuck: still } of counts) {
        gauge.set({ kind, state }, people);
        stuckGauge.set({ kind, state }, still);
      }
    });
  }
}

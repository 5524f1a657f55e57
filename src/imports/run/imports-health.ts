import { Injectable } from '@nestjs/common';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { PreparationRepository } from './preparation.repository.js';

/** How imports are: one that can't be planned or applied is attempted again, and somebody may have to see to it. */
@Injectable()
export class ImportsHealth {
  constructor(private readonly preparing: PreparationRepository) {}

  @HealthIndicator('imports')
  async check(): Promise<Health> {
    const putOff = await this.preparing.putOff();
    if (putOff === 0) return { status: 'ok' };
    const which = putOff === 1 ? '1 import could' : `${putOff} imports could`;
    const reason = `${which} not be planned or applied so far, and waits for another attempt: the log says why; cancel it, or mend that.`;
    return { status: 'degraded', reason, facts: { putOff } };
  }
}

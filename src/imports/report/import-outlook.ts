import { Injectable } from '@nestjs/common';
import type { StopCode } from '../../people/model/person-codes.js';
import { PlatformPeople } from '../../people/reconcile/platform-people.js';
import { CircuitsRepository } from '../../people/store/circuits.repository.js';
import type { ImportRecord } from '../model/import-types.js';

/** Why it can't be told when an import ends. */
export const ETA_UNKNOWN = [
  'paused',
  'not-configured',
  'platform-unauthorized',
  'platform-address',
  'platform-fault',
] as const;
export type EtaUnknown = (typeof ETA_UNKNOWN)[number] & (StopCode | 'paused' | 'not-configured' | 'platform-fault');

/** Whether anything can be sent for an import at present. */
@Injectable()
export class ImportOutlook {
  constructor(
    private readonly platform: PlatformPeople,
    private readonly circuits: CircuitsRepository,
  ) {}

  /** @returns null when it can be told, or there is nothing to tell */
  async etaUnknown({ state }: Pick<ImportRecord, 'state'>): Promise<EtaUnknown | null> {
    if (state === 'paused') return 'paused';
    if (state !== 'running' && state !== 'planned') return null;
    if (!this.platform.isConfigured) return 'not-configured';
    const [stopped] = await this.circuits.stopped();
    return stopped?.code ?? null;
  }
}

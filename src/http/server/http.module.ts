import { Global, Module } from '@nestjs/common';
import { ApiBodies, WebhookBodies } from '../body/body-memory.js';
import { AnswerCounts } from './answer-counts.js';
import { Metrics } from './metrics.js';

const PARTS = [AnswerCounts, ApiBodies, Metrics, WebhookBodies];

/** The parts of the HTTP edge that other modules inject; `setup.ts` installs the rest. */
@Global()
@Module({ providers: PARTS, exports: PARTS })
export class HttpModule {}

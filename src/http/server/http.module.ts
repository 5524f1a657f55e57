import { Global, Module } from '@nestjs/common';
import { ArrivingBodies } from '../body/body-policy.js';
import { AnswerCounts } from './answer-counts.js';
import { Metrics } from './metrics.js';

const PARTS = [AnswerCounts, ArrivingBodies, Metrics];

/** The parts of the HTTP edge that other modules inject; `setup.ts` installs the rest. */
@Global()
@Module({ providers: PARTS, exports: PARTS })
export class HttpModule {}

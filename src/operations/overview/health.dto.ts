import { ApiProperty, ApiPropertyOptional, getSchemaPath } from '@nestjs/swagger';
import type { Health } from '../../monitoring/health-indicator.js';
import type { Cause, PartReport } from './health-report.js';

/** The answer of a process that runs. */
export class LivenessResponse {
  status!: 'ok';
}

/** A fault. Several parts may report it or follow from it. */
export class CauseResponse implements Cause {
  /** @example no-worker */
  @ApiProperty({ type: String })
  code!: Cause['code'];
  /** The part that reports it */
  part!: string;
  status!: 'degraded' | 'down';
  /** The fault, in a sentence */
  cause!: string;
  /** The action to take */
  action!: string;
  /** When it began, or when this process first saw it */
  since!: Date;
  /** True if `since` is when it began; false if this process may have seen it late */
  hasKnownStart!: boolean;
  /** The other parts that report it, or cannot work because of it */
  affects!: string[];
}

/** The health of a part of the service. */
export class HealthResponse implements PartReport {
  /** `degraded`: it works with restrictions */
  status!: 'ok' | 'degraded' | 'down';
  /** The fault, and the action to take */
  reason?: string;
  /** The part whose fault is the reason */
  causedBy?: string;

  /** Relevant figures and words */
  @ApiPropertyOptional({ type: 'object', additionalProperties: true })
  facts?: NonNullable<Health['facts']>;
}

/** The health of the service. */
export class HealthReportResponse {
  /** `down` and `stopping` mean: send no requests */
  status!: 'ok' | 'degraded' | 'down' | 'stopping';

  /** Most severe first */
  causes!: CauseResponse[];

  /** By the names of the parts */
  @ApiProperty({ type: 'object', additionalProperties: { $ref: getSchemaPath(HealthResponse) } })
  checks!: Record<string, HealthResponse>;
}

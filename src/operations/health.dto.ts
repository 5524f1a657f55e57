import { ApiProperty, ApiPropertyOptional, getSchemaPath } from '@nestjs/swagger';
import type { Health } from '../http/server/health-indicator.js';

/** Whether the process runs. */
export class LivenessResponse {
  status!: 'ok';
}

/** How a part of the service is. */
export class HealthResponse implements Health {
  /** `degraded`: it works with restrictions */
  status!: 'ok' | 'degraded' | 'down';
  /** One sentence for an operator; absent if `ok` */
  reason?: string;

  /** Numbers and words worth seeing */
  @ApiPropertyOptional({ type: 'object', additionalProperties: true })
  facts?: NonNullable<Health['facts']>;
}

/** How the service is. */
export class HealthReportResponse {
  /** `down` and `stopping` mean: send no requests */
  status!: 'ok' | 'degraded' | 'down' | 'stopping';

  /** By the names of the parts */
  @ApiProperty({ type: 'object', additionalProperties: { $ref: getSchemaPath(HealthResponse) } })
  checks!: Record<string, HealthResponse>;
}

import { Controller, Get, Param } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiProperty, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { Problem } from '../../http/problem/problem.js';
import type { JobEnd } from '../model/job-state.js';
import { JobEventsRepository } from './job-events.repository.js';

export class SmartEditJobView {
  @ApiProperty({ type: String, description: "The platform's" })
  jobId!: string;

  @ApiProperty({ enum: ['Completed', 'Failed'] })
  state!: JobEnd;

  @ApiProperty({ type: String, format: 'date-time' })
  updatedAt!: string;
}

/** Smart edit jobs, of which the platform only tells how they ended. */
@ApiTags('smart-edit')
@Controller('v1/smart-edit/jobs')
@Scopes('sessions:read')
export class SmartEditController {
  constructor(private readonly jobs: JobEventsRepository) {}

  @Get(':jobId')
  @ApiOperation({ summary: 'How a smart edit job ended, as the platform told' })
  @ApiOkResponse({ type: SmartEditJobView })
  async show(@Param('jobId') jobId: string): Promise<SmartEditJobView> {
    const job = await this.jobs.findSmartEdit(jobId);
    if (!job) throw new Problem(404, 'unknown-job', 'The end of no smart edit job with this id was told.');
    return { jobId, state: job.state, updatedAt: job.updatedAt.toISOString() };
  }
}

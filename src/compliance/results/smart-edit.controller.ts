import { Controller, Get, Param } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { Problem } from '../../http/problem/problem.js';
import { SmartEditJobResponse } from '../model/job-view.js';
import { JobEventsRepository } from './job-events.repository.js';

/** Smart edit jobs, of which the platform reports only how they ended. */
@ApiTags('smart-edit')
@Controller('v1/smart-edit/jobs')
@Scopes('sessions:read')
export class SmartEditController {
  constructor(private readonly jobs: JobEventsRepository) {}

  /** How a smart edit job ended, as the platform reported */
  @Get(':jobId')
  async show(@Param('jobId') jobId: string): Promise<SmartEditJobResponse> {
    const job = await this.jobs.findSmartEdit(jobId);
    if (!job) throw new Problem(404, 'unknown-job', 'No event reported the end of a smart edit job with this id.');
    return { jobId, state: job.state, updatedAt: job.updatedAt };
  }
}

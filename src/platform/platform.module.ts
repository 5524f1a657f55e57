import { Module } from '@nestjs/common';
import { Env } from '../config/env.js';
import { CallLogRepository } from './call-log.repository.js';
import { CallsHealth } from './calls-health.js';
import { ComplianceClient } from './compliance-client.js';
import { Contract } from './contract.js';
import { readContract } from './contract-file.js';
import { HandedOutUrls } from './handed-out-urls.js';
import { PlatformHttp } from './platform-http.js';
import { RecorderClient } from './recorder-client.js';
import { SessionsClient } from './sessions-client.js';
import { UploadStream } from './upload-stream.js';
import { UsersClient } from './users-client.js';

const contract = {
  provide: Contract,
  useFactory: (env: Env) => readContract(env.PLATFORM_CONTRACT),
  inject: [Env],
};
const clients = [UsersClient, SessionsClient, ComplianceClient, RecorderClient, UploadStream, HandedOutUrls];

/** The therapy-notes platform as the rest of the service sees it. */
@Module({
  providers: [contract, PlatformHttp, CallLogRepository, CallsHealth, ...clients],
  exports: [Contract, CallLogRepository, ...clients],
})
export class PlatformModule {}

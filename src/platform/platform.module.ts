import { Module } from '@nestjs/common';
import { Env } from '../config/env.js';
import { FileUploads } from './clients/file-uploads.js';
import { PlatformClient } from './clients/platform-client.js';
import { SentData } from './clients/sent-data.js';
import { UsersClient } from './clients/users-client.js';
import { Contract } from './contract/contract.js';
import { readContract } from './contract/contract-file.js';
import { PlatformHttp } from './http/platform-http.js';
import { UnreadableAnswers } from './http/unreadable-answers.repository.js';
import { CallJudge } from './pauses/call-judge.js';
import { CallLog } from './pauses/call-log.repository.js';
import { CallsHealth } from './pauses/calls-health.js';
import { PausesRepository } from './pauses/pauses.repository.js';
import { RequestCalls } from './pauses/request-calls.js';
import { HandedOutUrls } from './upload/handed-out-urls.js';
import { UploadStream } from './upload/upload-stream.js';

const contract = {
  provide: Contract,
  useFactory: (env: Env) => readContract(env.PLATFORM_CONTRACT),
  inject: [Env],
};
const clients = [UsersClient, PlatformClient, FileUploads, HandedOutUrls, SentData];
const pauses = [CallJudge, CallLog, CallsHealth, PausesRepository, RequestCalls];

/** Access to the therapy-notes platform. */
@Module({
  providers: [contract, PlatformHttp, UnreadableAnswers, UploadStream, ...clients, ...pauses],
  exports: [Contract, ...clients, ...pauses],
})
export class PlatformModule {}

import { Global, Module } from '@nestjs/common';
import { FeedController } from './feed.controller.js';
import { Feed } from './feed.js';
import { FeedBell } from './feed-bell.js';
import { FeedReader } from './feed-reader.js';
import { FeedStream } from './feed-stream.js';
import { SubjectIds } from './subject-ids.js';

/** The change feed. */
@Global()
@Module({
  controllers: [FeedController],
  providers: [Feed, FeedBell, FeedReader, FeedStream, SubjectIds],
  exports: [Feed, FeedBell, FeedReader, SubjectIds],
})
export class FeedModule {}

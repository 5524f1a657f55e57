import { Global, Module } from '@nestjs/common';
import { FeedController } from './feed.controller.js';
import { Feed } from './feed.js';
import { FeedBell } from './feed-bell.js';
import { FeedNumbers } from './feed-numbers.js';
import { FeedReader } from './feed-reader.js';
import { LongPoll } from './long-poll.js';
import { SubjectIds } from './subject-ids.js';

/** The change feed. */
@Global()
@Module({
  controllers: [FeedController],
  providers: [Feed, FeedBell, FeedNumbers, FeedReader, LongPoll, SubjectIds],
  exports: [Feed, FeedBell, FeedReader, SubjectIds],
})
export class FeedModule {}

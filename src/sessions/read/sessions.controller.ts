import { Controller, Get, Param, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { AuditedRead } from '../../access/audit/audit.interceptor.js';
import { Scopes } from '../../access/identity/scopes.js';
import type { Page } from '../../http/request/page.js';
import { ClientDisconnect } from '../../http/request/waiting.js';
import { type InsightsView, SessionReader } from './session-reader.js';
import { SessionResponse } from './session-view.js';
import { SessionsQuery } from './sessions.dto.js';

/** Sessions as the EHR reads them; `{id}` is ours or the platform's. */
@ApiTags('sessions')
@Controller('v1/sessions')
export class SessionsController {
  constructor(private readonly reader: SessionReader) {}

  /** Sessions in the order of their last change, the oldest first */
  @Get()
  @Scopes('sessions:read')
  async list(@Query() query: SessionsQuery): Promise<Page<SessionResponse>> {
    const { limit, cursor, updatedSince, ...filter } = query;
    const since = updatedSince === undefined ? undefined : new Date(updatedSince);
    return this.reader.list({ ...filter, updatedSince: since }, limit, cursor);
  }

  /** One session, by our id or the platform's */
  @Get(':id')
  @Scopes('sessions:read')
  async show(@Param('id') id: string): Promise<SessionResponse> {
    return this.reader.show(id);
  }

  /**
   * The transcript as the platform gave it
   *
   * @remarks Utterances with their words, and who spoke.
   */
  @Get(':id/transcript')
  @Scopes('notes:read')
  @AuditedRead()
  async transcript(@Param('id') id: string): Promise<unknown> {
    return this.reader.transcript(id);
  }

  /** Topics, named entities and analytics as the platform gave them */
  @Get(':id/insights')
  @Scopes('notes:read')
  @AuditedRead()
  async insights(@Param('id') id: string): Promise<InsightsView> {
    return this.reader.insights(id);
  }

  /**
   * An address of the recording that is valid for a limited time
   *
   * @remarks It is asked for now, and not stored.
   */
  @Get(':id/recording-url')
  @Scopes('notes:read')
  @AuditedRead()
  async recordingUrl(@Param('id') id: string, @ClientDisconnect() signal: AbortSignal): Promise<{ url: string }> {
    return { url: await this.reader.recordingUrl(id, signal) };
  }
}

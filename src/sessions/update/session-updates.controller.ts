import { Body, Controller, HttpCode, Param, Patch, Put } from '@nestjs/common';
import { ApiBody, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import { Scopes } from '../../access/identity/scopes.js';
import { BodyLimit } from '../../http/request/route-options.js';
import { SESSION_BODY_LIMIT } from '../create/create-session.dto.js';
import { SessionView } from '../read/session-view.js';
import { SessionUpdates } from './session-updates.js';
import { UPDATE_EXAMPLES } from './update-examples.js';
import { NoteTemplatesDto, UpdateSessionDto } from './update-session.dto.js';

/** Changes to sessions; `{id}` is ours or the platform's. */
@ApiTags('sessions')
@Controller('v1/sessions/:id')
@Scopes('sessions:write')
export class SessionUpdatesController {
  constructor(private readonly updates: SessionUpdates) {}

  @Patch()
  @ApiOperation({
    summary: 'Changes what the notes are made from',
    description: 'What is absent, null or blank stays as it is; at least one field must say something.',
  })
  @HttpCode(200)
  @BodyLimit(SESSION_BODY_LIMIT)
  @ApiBody({ type: UpdateSessionDto, examples: UPDATE_EXAMPLES })
  @ApiOkResponse({ type: SessionView })
  async update(@Param('id') id: string, @Body() dto: UpdateSessionDto): Promise<SessionView> {
    return this.updates.update(id, dto);
  }

  @Put('note-templates')
  @HttpCode(200)
  @ApiOperation({ deprecated: true, summary: 'Adds or reprocesses note templates; PATCH the session instead' })
  @ApiOkResponse({ type: SessionView })
  async updateNoteTemplates(
    @Param('id') id: string,
    @Body() { noteTemplateIds }: NoteTemplatesDto,
  ): Promise<SessionView> {
    return this.updates.updateNoteTemplates(id, noteTemplateIds);
  }
}

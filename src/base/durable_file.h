// base/durable_file.h: files that exist whole or not at all, whatever happens while they are written.
//
// Threads  any, for different paths.
// Errors   kIo with the path as `param`; nothing is left behind then.
// Cost     waits for the disk twice: for the file and for its name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "base/result.h"

namespace hocket {

// Writes the pieces one after the other to a file beside `path` (named .NAME.tmp-XXXXXX), readable by its owner only,
// and gives it the name when all of it is on the disk. An older file of that name is replaced.
Result<void> write_durably(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);
Result<void> write_durably(const std::filesystem::path& path, std::span<const std::byte> bytes);

// Names that were given or taken in a folder are on the disk when it returns.
Result<void> sync_folder(const std::filesystem::path& folder);

// All of a file; kNotFound when there is none, kInvalid when it is larger than `most` bytes.
Result<std::vector<std::byte>> read_file(const std::filesystem::path& path, std::size_t most);

// Removes what an interrupted write_durably() left in a folder that nobody else writes to now.
void remove_unfinished(const std::filesystem::path& folder);

}  // namespace hocket

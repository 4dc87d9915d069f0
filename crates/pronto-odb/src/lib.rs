//! Objects by id, over loose files, packs and alternates.

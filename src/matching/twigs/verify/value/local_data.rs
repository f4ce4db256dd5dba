//! The documents of local data: those that an index finds, or all of them.

use super::Evaluated;
use crate::data::{DataSet, Key, Node, TreeId};
use crate::document::NodeRef;
use crate::limits::SCANNED_RECORDS_LIMIT;
use crate::matching::automaton::names::Names;
use crate::matching::budget::WorkLimit;
use crate::matching::twigs::verify::Verifier;
use crate::segment::twig::local_data::*;
use crate::segment::twig::{STEP_ANY, STEP_NAME, part};

impl<'a> Verifier<'a> {
    /// The document nodes of local data, compiled at `at`: of the records that an equality finds, if there is one.
    pub(super) fn data(&mut self, at: u32, context: NodeRef) -> Result<Vec<Node>, WorkLimit> {
        let word = self.words[at as usize];
        let (is_collection, count) = (word >> 8 & 1 != 0, word >> 16);
        let name = self.text(self.words[at as usize + 1]);
        let Some(data) = self.trees.names().data() else { return Err(WorkLimit) };
        let place = data.sets.find(name).ok_or(WorkLimit)?;
        let (set, names) = (data.sets.at(place), &data.names[place]);
        if !is_collection && set.records.len() != 1 {
            return Err(WorkLimit);
        }
        let mut fewest: Option<Vec<u32>> = None;
        for access in 0..count {
            let access = part(self.words, at, 2 + access);
            if let Some(found) = self.records_by(access, set, names, context)?
                && fewest.as_ref().is_none_or(|fewest| found.len() < fewest.len())
            {
                fewest = Some(found);
            }
        }
        let node = |record| Node { tree: TreeId::of_record(place, record), node: NodeRef::Document };
        match fewest {
            Some(mut found) => {
                self.budget.spend(found.len())?;
                found.sort_unstable();
                found.dedup();
                Ok(found.into_iter().map(node).collect())
            }
            None if set.records.len() > SCANNED_RECORDS_LIMIT => Err(WorkLimit),
            None => {
                self.budget.spend(set.records.len())?;
                Ok((0..set.records.len() as u32).map(node).collect())
            }
        }
    }

    /// The records that an access finds; `None` if the values that it asks for are not indexed.
    fn records_by(
        &mut self,
        access: u32,
        set: &DataSet,
        names: &Names,
        context: NodeRef,
    ) -> Result<Option<Vec<u32>>, WorkLimit> {
        let word = self.words[access as usize];
        let count = word >> 8;
        let mut all = Vec::new();
        if word & 0xFF == ACCESS_ANY {
            for place in 1..=count {
                match self.records_by(part(self.words, access, place), set, names, context)? {
                    Some(mut found) => all.append(&mut found),
                    None => return Ok(None),
                }
            }
            return Ok(Some(all));
        }
        let value = self.words[access as usize + 1];
        let steps = key_steps(self.words, access, |kind, label| {
            move |name| match kind {
                STEP_NAME => names.name_of(label) == name,
                STEP_ANY => true,
                _ => names.of(name).pass_wildcard(label),
            }
        });
        let Some(paths) = set.index.paths(set.vocabulary(), &steps) else { return Ok(None) };
        if paths.is_empty() {
            return Ok(Some(all));
        }
        let find = |key: Key<'_>, all: &mut Vec<u32>| {
            paths.iter().for_each(|&path| set.index.find(path, key, all));
        };
        let trees = self.trees;
        let evaluated = self.value(value, context)?;
        self.spend_values(&evaluated)?;
        self.budget.spend(evaluated.count() * paths.len())?;
        match evaluated {
            Evaluated::Nodes(nodes) => {
                nodes.into_iter().for_each(|node| find(Key::Text(trees.value_of(node)), &mut all));
            }
            Evaluated::Text(text) => find(Key::Text(&text), &mut all),
            Evaluated::Number(number) => find(Key::Number(number), &mut all),
            Evaluated::Boolean(_) | Evaluated::Items(_) => return Ok(None),
        }
        self.budget.spend(all.len())?;
        Ok(Some(all))
    }
}
